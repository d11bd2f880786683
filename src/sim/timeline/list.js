/** Every moment on a line of its own, under one column for each lane. Only the lines that are seen exist. */
import { color, gapMs, html, span, svg, time } from "./draw.js"

const rowHeight = 24
const column = 20

export const list = ({ lanes, lives, moments }, { onSelect }) => {
  const width = lanes.length * column + 8
  const canvas = html("div", { id: "canvas" })
  const rows = html("div", { id: "rows", tabindex: 0, role: "listbox", "aria-label": "moments" }, canvas)
  const root = html("div", { class: "list" }, heads(lanes, width), rows)
  let shown = moments.map((_, index) => index)
  let selected = 0

  const x = (lane) => lane * column + column / 2 + 4
  const aliveIn = (moment) =>
    new Set(lives.filter(({ from, to }) => from <= moment && moment <= to).map(({ lane }) => lane))

  const graph = (index) => {
    const { fault, kind, label, lane, peer } = moments[index]
    const alive = aliveIn(index)
    const middle = rowHeight / 2
    const isBad = fault !== null || kind === "violation" || kind === "crash"
    const rails = lanes.flatMap(({ kind }, lane) => {
      const isBeing = kind === "process" || kind === "client"
      if (isBeing && !alive.has(lane)) return []
      const style = isBeing ? { stroke: color(kind), "stroke-width": 2, opacity: 0.45 } : { stroke: "var(--line)" }
      return [svg("line", { x1: x(lane), x2: x(lane), y1: 0, y2: rowHeight, ...style })]
    })
    const link = peer === null ? [] : linkBetween(x(lane), x(peer), middle, kind, colorOf(moments[index]))
    const own = isBad ? "var(--red)" : color(lanes[lane].kind)
    const mark = kind === "crash"
      ? svg("path", { d: `M${x(lane) - 5},${middle - 5}l10,10m0,-10l-10,10`, stroke: own, "stroke-width": 2.4 })
      : fault !== null || kind === "violation"
      ? svg("path", { d: `M${x(lane)},${middle - 6}l6,6l-6,6l-6,-6z`, fill: own })
      : label === "committed"
      ? svg("rect", { x: x(lane) - 4.5, y: middle - 4.5, width: 9, height: 9, rx: 1.5, fill: own })
      : svg("circle", { cx: x(lane), cy: middle, r: kind === "spawn" ? 5 : 3.6, fill: own })
    return svg("svg", { width, height: rowHeight }, rails, link, mark)
  }

  const colorOf = ({ label, lane, peer }) => color(lanes[label === "committed" ? lane : peer].kind)

  const row = (place) => {
    const index = shown[place]
    const { actor, at, detail, fault, kind, label, step } = moments[index]
    const gap = place === 0 ? 0 : at - moments[shown[place - 1]].at
    const state = fault !== null ? "is-fault" : kind === "violation" || kind === "crash" ? `is-${kind}` : ""
    return html(
      "div",
      {
        class: `row ${state} ${index === selected ? "selected" : ""}`,
        style: `top:${place * rowHeight}px`,
        role: "option",
        "aria-selected": index === selected ? "true" : "false",
        onclick: () => onSelect(index)
      },
      html("div", { class: "time" }, gap >= gapMs ? html("b", {}, `+${span(gap)}`) : null, time(at)),
      html("div", { class: "step" }, String(step)),
      graph(index),
      html(
        "div",
        { class: "words" },
        html("span", { class: "kind" }, fault !== null ? "fault" : label === "committed" ? "commit" : kind),
        html("b", {}, fault ?? label),
        " ",
        html("span", { class: "who" }, actor),
        detail === "" ? null : html("span", { class: "detail" }, ` — ${detail}`)
      )
    )
  }

  const draw = () => {
    canvas.style.height = `${shown.length * rowHeight}px`
    const first = Math.max(0, Math.floor(rows.scrollTop / rowHeight) - 8)
    const last = Math.min(shown.length, first + Math.ceil(rows.clientHeight / rowHeight) + 16)
    const seen = Array.from({ length: Math.max(0, last - first) }, (_, offset) => row(first + offset))
    const nothing = shown.length === 0 ? [html("p", { class: "empty" }, "No moment is like that.")] : []
    canvas.replaceChildren(...seen, ...nothing)
  }

  rows.addEventListener("scroll", draw, { passive: true })
  addEventListener("resize", draw)

  return {
    root,
    rows,
    draw,
    get shown() {
      return shown
    },
    show: (indexes) => {
      shown = indexes
      draw()
    },
    select: (index) => {
      selected = index
      const place = shown.indexOf(index)
      if (place >= 0) {
        const y = place * rowHeight
        const { clientHeight, scrollTop } = rows
        const isSeen = y >= scrollTop + 2 * rowHeight && y <= scrollTop + clientHeight - 3 * rowHeight
        if (!isSeen) rows.scrollTop = y - clientHeight / 2
      }
      draw()
    }
  }
}

/** The names of the lanes, aslant above their columns. */
const heads = (lanes, width) => {
  const height = 12 + 5.2 * Math.max(...lanes.map(({ name }) => name.length))
  const names = lanes.map(({ kind, name }, lane) => {
    const [x, y] = [lane * column + column / 2 + 6, height - 6]
    return svg("text", { x, y, transform: `rotate(-55 ${x} ${y})`, style: `fill:${color(kind)}` }, name)
  })
  return html(
    "div",
    { class: "heads" },
    html("div", { class: "time" }, "virtual time"),
    html("div", { class: "step" }, "step"),
    svg("svg", { width, height }, names),
    html("div", { style: "padding-left:10px" }, "what happened")
  )
}

/** To where a request arrives; dashed, and the other way, for an answer. */
const linkBetween = (own, peer, y, kind, stroke) => {
  const [from, to] = kind === "arrive" ? [own, peer] : [peer, own]
  const tip = to - Math.sign(to - from) * (kind === "arrive" ? 1 : 5)
  const back = Math.sign(from - to) * 5
  const dashes = { "stroke-width": 1.4, "stroke-dasharray": kind === "arrive" ? null : "3 2" }
  return [
    svg("line", { x1: from, x2: tip, y1: y, y2: y, stroke, ...dashes }),
    svg("path", { d: `M${tip},${y}l${back},-3.6v7.2z`, fill: stroke })
  ]
}
