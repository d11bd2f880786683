/** Holds a value against the part of JSON Schema that our own document uses. Whatever else it meets there, it refuses. */

type Schema = Record<string, any>

/** Words that say nothing about what is valid. */
const words = new Set(["description", "title", "default", "format", "contentMediaType", "examples", "identifier"])

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value

const fits = (type: string, value: unknown): boolean =>
  typeOf(value) === type || (type === "number" && typeof value === "number")

type Rule = (wanted: any, value: any, schema: Schema, at: (value: unknown, schema: Schema, path: string) => Array<string>) => Array<string>

const no = (wrong: boolean, message: string): Array<string> => wrong ? [message] : []

const rules: Record<string, Rule> = {
  $ref: () => [],
  type: (type, value) => no(![type].flat().some((one: string) => fits(one, value)), `is ${typeOf(value)}, not ${type}`),
  enum: (values, value) => no(!values.includes(value), `is ${JSON.stringify(value)}, not one of ${JSON.stringify(values)}`),
  pattern: (pattern, value) => no(typeof value === "string" && !new RegExp(pattern, "u").test(value), `is not ${pattern}`),
  minLength: (least, value) => no(typeof value === "string" && value.length < least, "is too short"),
  maxLength: (most, value) => no(typeof value === "string" && value.length > most, "is too long"),
  minItems: (least, value) => no(Array.isArray(value) && value.length < least, "has too few"),
  maxItems: (most, value) => no(Array.isArray(value) && value.length > most, "has too many"),
  minProperties: (least, value) => no(typeOf(value) === "object" && Object.keys(value).length < least, "has too few"),
  minimum: (least, value) => no(typeof value === "number" && value < least, "is too small"),
  maximum: (most, value) => no(typeof value === "number" && value > most, "is too large"),
  required: (names, value) =>
    names.flatMap((name: string) => no(typeOf(value) === "object" && !(name in value), `lacks ${name}`)),
  properties: (properties, value, _, at) =>
    typeOf(value) !== "object" ? [] : Object.entries<Schema>(properties).flatMap(([name, schema]) =>
      name in value ? at(value[name], schema, `/${name}`) : []
    ),
  additionalProperties: (allowed, value, { properties = {} }, at) =>
    typeOf(value) !== "object" ? [] : Object.keys(value).filter((name) => !(name in properties)).flatMap((name) =>
      allowed === false ? [`has ${name}`] : typeof allowed === "object" ? at(value[name], allowed, `/${name}`) : []
    ),
  items: (items, value, _, at) =>
    !Array.isArray(value) ? [] : value.flatMap((one: unknown, index: number) => at(one, items, `/${index}`)),
  anyOf: (schemas, value, _, at) => no(!schemas.some((one: Schema) => at(value, one, "").length === 0), "is none of anyOf"),
  oneOf: (schemas, value, _, at) =>
    no(schemas.filter((one: Schema) => at(value, one, "").length === 0).length !== 1, "is not one of oneOf"),
  allOf: (schemas, value, _, at) => schemas.flatMap((one: Schema) => at(value, one, ""))
}

/** What is wrong with a value, by its place. Empty when it is as the schema says. */
export const violations = (document: any, schema: Schema, value: unknown, path = ""): Array<string> => {
  const resolved = typeof schema.$ref === "string"
    ? document.components.schemas[schema.$ref.split("/").at(-1)!] as Schema
    : schema
  return Object.entries(resolved).flatMap(([word, wanted]) => {
    if (words.has(word)) return []
    const rule = rules[word]
    if (rule === undefined) return [`${path}: nobody knows what ${word} means`]
    return rule(wanted, value, resolved, (inner, schema, step) => violations(document, schema, inner, path + step))
      .map((wrong) => wrong.startsWith("/") ? wrong : `${path || "/"}: ${wrong}`)
  })
}
