/** Small things that everything on the page is drawn with. Text never becomes markup. */

const svgSpace = "http://www.w3.org/2000/svg"

const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value)
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : String(value))
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== false) node.append(child)
  }
  return node
}

/** An element of the page: text children are text. */
export const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children)

/** An element of a drawing. */
export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(svgSpace, name), attributes, children)

/** A gap of this length is marked, with how long it is. */
export const gapMs = 1_000

export const time = (ms) =>
  ms >= 60_000
    ? `${Math.floor(ms / 60_000)}:${((ms % 60_000) / 1_000).toFixed(3).padStart(6, "0")}`
    : ms >= 1_000 ? `${(ms / 1_000).toFixed(3)} s` : `${ms.toFixed(3)} ms`

export const span = (ms) =>
  ms >= 60_000
    ? `${(ms / 60_000).toFixed(1)} min`
    : ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms)} ms`

export const color = (kind) => `var(--${kind})`
