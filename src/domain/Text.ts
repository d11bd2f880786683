/** Texts as UTF-16 has them. */

/** The beginning of a text: at most `max` units of it, and no character cut in two. */
export const beginning = (text: string, max: number): string => text.slice(0, max).replace(/[\uD800-\uDBFF]$/, "")
