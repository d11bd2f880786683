/** The page around the pictures: the verdict, the filters, what is known of one moment, and the keys. */
import { html, span, time } from "./draw.js"
import { list } from "./list.js"
import { overview } from "./overview.js"

const data = JSON.parse(document.querySelector("#run").textContent)
const { broken, facts, kinds, lanes, moments } = data
const faults = moments.flatMap(({ fault }, index) => fault === null ? [] : [index])
const end = moments.findIndex(({ kind }) => kind === "violation")

const state = { selected: 0, lanes: new Set(), text: "", operation: "", quiet: true }

const select = (index) => {
  state.selected = index
  picture.select(index)
  rows.select(index)
  details()
}

const picture = overview(data, { onSelect: (index) => select(nearestShown(index)) })
const rows = list(data, { onSelect: select })
const aside = html("aside")

/** The same moment, or the next one that the filters let through. */
const nearestShown = (index) =>
  rows.shown.reduce((best, one) => Math.abs(one - index) < Math.abs(best - index) ? one : best, rows.shown[0] ?? index)

const isShown = ({ actor, detail, fault, kind, label, lane, peer }) => {
  if (fault !== null || kind === "violation") return true
  if (state.quiet && (kind === "timer" || (kind === "clock"))) return false
  if (state.lanes.size > 0 && !state.lanes.has(lane) && !(peer !== null && state.lanes.has(peer))) return false
  const words = `${kind} ${label} ${actor} ${detail}`.toLowerCase()
  return words.includes(state.text.toLowerCase()) && words.includes(state.operation)
}

const filter = () => {
  rows.show(moments.flatMap((moment, index) => isShown(moment) ? [index] : []))
  select(nearestShown(state.selected))
}

const verdict = () =>
  broken.length === 0
    ? [html("div", { class: "verdict held" }, html("h1", {}, "Held"), html("p", {}, "every invariant, at every step"))]
    : broken.map(({ detail, id, invariant, promise }, place) =>
      html(
        "button",
        { class: "verdict broken", onclick: () => select(end + place), title: "go to the moment" },
        html("h1", {}, `Broken: ${invariant}`),
        html("p", {}, promise, " ", html("span", { class: "where" }, `${id}: ${detail}`)),
        html("span", { class: "mono" }, `at ${time(moments[end + place].at)}, step ${moments[end + place].step}`)
      )
    )

const header = () =>
  html(
    "header",
    {},
    verdict(),
    html("div", { class: "facts" }, facts.map(([name, value]) => html("span", {}, `${name} `, html("b", {}, value)))),
    html(
      "div",
      { class: "faults" },
      html("span", { class: "hint" }, faults.length === 0 ? "no fault struck" : faults.length === 1 ? "1 fault struck:" : `${faults.length} faults struck:`),
      faults.length > 12 ? byKind() : faults.map((index) => chip(index, moments[index].actor, () => index))
    )
  )

const chip = (index, words, next) =>
  html(
    "button",
    { class: "chip fault", onclick: () => select(next()), title: kinds[moments[index].fault] },
    moments[index].fault,
    html("small", {}, words)
  )

/** Many faults are one chip for each kind, which goes from one to the next. */
const byKind = () =>
  [...Map.groupBy(faults, (index) => moments[index].fault).values()].map((ofKind) =>
    chip(ofKind[0], `× ${ofKind.length}`, () => ofKind.find((index) => index > state.selected) ?? ofKind[0])
  )

/** Ids that come up more than once in what is said, most often first. */
const operations = () => {
  const counts = new Map()
  for (const { detail, label } of moments) {
    for (const id of `${label} ${detail}`.match(/\b(?:op-[0-9a-f]{8}|operation-\d+)\b/g) ?? []) {
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
  }
  return [...counts].filter(([, count]) => count > 1).toSorted(([, one], [, other]) => other - one).map(([id]) => id)
}

const controls = () => {
  const lane = ({ name }, index) =>
    html("button", {
      class: "chip",
      "aria-pressed": "false",
      onclick: (event) => {
        if (!state.lanes.delete(index)) state.lanes.add(index)
        event.currentTarget.setAttribute("aria-pressed", String(state.lanes.has(index)))
        filter()
      }
    }, name)
  const known = operations()
  const choice = html(
    "select",
    { onchange: (event) => filter(state.operation = event.target.value), "aria-label": "operation" },
    html("option", { value: "" }, "every operation"),
    known.map((id) => html("option", { value: id }, id))
  )
  const words = { placeholder: "filter by words", oninput: (event) => filter(state.text = event.target.value), id: "words" }
  const timers = html("input", { type: "checkbox", onchange: (event) => filter(state.quiet = !event.target.checked) })
  return html(
    "nav",
    {},
    html("span", { class: "group" }, html("label", {}, "only"), lanes.map(lane)),
    known.length === 0 ? null : choice,
    html("input", words),
    html("label", { class: "group" }, timers, "timers"),
    html("span", { class: "hint" }, keys([["↑ ↓", "step"], ["← →", "fault"], ["v", "violation"], ["/", "filter"]]))
  )
}

const keys = (pairs) => pairs.flatMap(([key, what]) => [html("kbd", {}, key), ` ${what}  `])

const details = () => {
  const moment = moments[state.selected]
  if (moment === undefined) return
  const { actor, at, detail, fault, kind, label, lane, peer, step } = moment
  const entry = (name, value) => value === "" ? [] : [html("dt", {}, name), html("dd", {}, value)]
  const mine = moments.flatMap((other, index) => other.actor === actor ? [index] : [])
  const place = mine.indexOf(state.selected)
  const before = mine[place - 1]
  const near = mine.slice(Math.max(0, place - 7), place + 8)
  aside.replaceChildren(
    html("h2", {}, label === "" ? kind : label),
    ...(fault === null ? [] : [html("p", { class: "note" }, html("b", {}, fault), `: ${kinds[fault]}`)]),
    ...(kind === "violation"
      ? [html("p", { class: "note" }, broken.find(({ invariant }) => invariant === label)?.promise ?? "")]
      : []),
    html(
      "dl",
      {},
      entry("who", actor),
      entry("what", kind),
      entry(kind === "reply" ? "from" : "to", peer === null ? "" : lanes[peer].name),
      entry("when", `${time(at)} (step ${step})`),
      entry("before", before === undefined ? "" : `${span(at - moments[before].at)} after its last`),
      entry("detail", detail),
      entry("lane", lanes[lane].name)
    ),
    html("h3", {}, `around it, of ${actor}`),
    ...near.map((index) =>
      html(
        "button",
        { class: "near", onclick: () => select(index), style: index === state.selected ? "font-weight:600" : "" },
        html("span", { class: "mono" }, time(moments[index].at)),
        `${moments[index].fault ?? moments[index].kind} ${moments[index].label}`
      )
    )
  )
}

const step = (by) => {
  const place = rows.shown.indexOf(nearestShown(state.selected))
  const next = rows.shown[Math.min(rows.shown.length - 1, Math.max(0, place + by))]
  if (next !== undefined) select(next)
}

const toFault = (by) => {
  const next = by > 0
    ? faults.find((index) => index > state.selected)
    : faults.findLast((index) => index < state.selected)
  if (next !== undefined) select(next)
}

const onKey = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  PageDown: () => step(20),
  PageUp: () => step(-20),
  Home: () => step(-Infinity),
  End: () => step(Infinity),
  ArrowRight: () => toFault(1),
  ArrowLeft: () => toFault(-1),
  v: () => end >= 0 && select(end),
  "/": () => document.querySelector("#words").focus()
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.activeElement?.blur()
  const isTyping = event.target.matches?.("input:not([type=checkbox]), select") === true
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || onKey[event.key] === undefined) return
  event.preventDefault()
  onKey[event.key]()
})

document.body.prepend(header(), picture.root, controls(), html("main", {}, rows.root, aside))
picture.draw()
filter()
select(end >= 0 ? end : 0)
