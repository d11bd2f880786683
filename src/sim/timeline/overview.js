/** The whole run in one picture: time goes right, one line for each lane, idle time is folded. */
import { color, gapMs, html, span, svg, time } from "./draw.js"

const left = 118
const right = 14
const top = 20
const laneHeight = 17

/** Where each moment is, in units: as far from the last as it takes to see it, and a little more for time. */
const places = (moments) => {
  let place = 0
  return moments.map(({ at }, index) => {
    if (index > 0) place += 1 + Math.min(14, 1.6 * Math.log2(1 + Math.max(0, at - moments[index - 1].at) / 4))
    return place
  })
}

export const overview = ({ lanes, lives, moments }, { onSelect }) => {
  const at = places(moments)
  const length = (at.at(-1) ?? 0) + 2
  const height = top + lanes.length * laneHeight + 8
  const picture = svg("svg", { height, role: "img", "aria-label": "overview of the run" })
  const root = html("section", { id: "overview" }, picture)
  let view = [-1, length]
  let selected = 0

  const width = () => Math.max(200, picture.clientWidth - left - right)
  const x = (place) => left + (place - view[0]) / (view[1] - view[0]) * width()
  const xOf = (moment) => x(moment >= at.length ? length : at[moment])
  const y = (lane) => top + lane * laneHeight + laneHeight / 2
  const isSeen = (moment) => at[moment] >= view[0] && at[moment] <= view[1]
  const clamp = (value) => Math.min(left + width() + 1, Math.max(left - 1, value))

  const rails = () =>
    lanes.map(({ kind, name }, lane) => [
      svg("text", { class: "name", x: left - 10, y: y(lane) + 4, "text-anchor": "end" }, name),
      kind === "process" || kind === "client" ? null : rail(y(lane))
    ])

  const rail = (height) => svg("line", { class: "rail", x1: left, x2: left + width(), y1: height, y2: height })

  const existence = () =>
    lives.flatMap(({ end, from, lane, name, to }) => {
      const [x1, x2] = [clamp(xOf(from)), clamp(xOf(to))]
      const stroke = color(lanes[lane].kind)
      const bar = svg("line", { class: "life", x1, x2, y1: y(lane), y2: y(lane), stroke }, svg("title", {}, name))
      if (end !== "crash" || !isSeen(to)) return [bar]
      const d = `M${x2 - 4},${y(lane) - 4}l8,8m0,-8l-8,8`
      return [bar, svg("path", { class: "cross", d }, svg("title", {}, `${name} crashed`))]
    })

  const axis = () => {
    const marks = []
    let free = left
    moments.forEach((moment, index) => {
      if (!isSeen(index)) return
      const gap = index === 0 ? 0 : moment.at - moments[index - 1].at
      if (gap >= gapMs) {
        const [x1, x2] = [clamp(xOf(index - 1)) + 1, clamp(xOf(index)) - 1]
        if (x2 > x1) {
          const band = { class: "gap", x: x1, y: top - 2, width: x2 - x1, height: height - top }
          marks.push(svg("rect", band, svg("title", {}, `nothing for ${span(gap)}`)))
        }
      }
      if (xOf(index) < free || xOf(index) > left + width() - 50) return
      free = xOf(index) + 92
      marks.push(
        svg("line", { class: "tick", x1: xOf(index), x2: xOf(index), y1: top - 3, y2: height }),
        svg("text", { x: xOf(index) + 2, y: 12 }, time(moment.at))
      )
    })
    return marks
  }

  const traffic = () => {
    const size = Math.min(3, Math.max(1, width() / (view[1] - view[0]) / 2.4))
    return moments.flatMap((moment, index) => {
      if (!isSeen(index)) return []
      const { fault, kind, label, lane, peer } = moment
      const place = xOf(index)
      if (kind === "violation") return [svg("line", { class: "broken", x1: place, x2: place, y1: top - 4, y2: height })]
      if (fault !== null) {
        const d = `M${place},${y(lane) - 6}l6,6l-6,6l-6,-6z`
        return [svg("path", { class: "fault", d }, svg("title", {}, `${fault} at ${time(moment.at)}`))]
      }
      const stroke = color(lanes[label === "committed" ? lane : peer ?? lane].kind)
      const dot = svg("circle", { class: "dot", cx: place, cy: y(lane), r: size, fill: color(lanes[lane].kind) })
      if (kind === "crash") return []
      if (peer === null) return [dot]
      return [svg("line", { class: "link", x1: place, x2: place, y1: y(lane), y2: y(peer), stroke }), dot]
    })
  }

  const cursor = () => {
    if (!isSeen(selected)) return []
    const place = xOf(selected)
    return [svg("line", { class: "cursor", x1: place, x2: place, y1: top - 6, y2: height })]
  }

  const draw = () => {
    picture.replaceChildren(
      svg("g", {}, axis()), svg("g", {}, rails()), svg("g", {}, existence()), svg("g", { id: "traffic" }, traffic()),
      svg("g", { id: "cursor" }, cursor())
    )
  }

  const nearest = (event) => {
    const place = view[0] + (event.clientX - picture.getBoundingClientRect().left - left) / width() * (view[1] - view[0])
    const lane = Math.floor((event.clientY - picture.getBoundingClientRect().top - top) / laneHeight)
    let best = 0
    let distance = Infinity
    moments.forEach((moment, index) => {
      const elsewhere = moment.lane === lane || moment.peer === lane ? 0 : (view[1] - view[0]) / 60
      const far = Math.abs(at[index] - place) + elsewhere
      if (far < distance) [best, distance] = [index, far]
    })
    return best
  }

  const zoom = (event) => {
    event.preventDefault()
    const [from, to] = view
    const share = Math.min(1, Math.max(0, (event.clientX - picture.getBoundingClientRect().left - left) / width()))
    const span = Math.min(length + 1, Math.max(12, (to - from) * (event.deltaY > 0 ? 1.25 : 0.8)))
    const begin = Math.min(length - span, Math.max(-1, from + (to - from) * share - span * share))
    view = [begin, begin + span]
    draw()
  }

  picture.addEventListener("wheel", zoom, { passive: false })
  picture.addEventListener("dblclick", () => {
    view = [-1, length]
    draw()
  })
  picture.addEventListener("pointerdown", (event) => onSelect(nearest(event)))
  addEventListener("resize", draw)

  return {
    root,
    draw,
    select: (moment) => {
      selected = moment
      const [from, to] = view
      if (!isSeen(moment)) {
        view = [at[moment] - (to - from) / 2, at[moment] + (to - from) / 2]
        draw()
      }
      picture.querySelector("#cursor").replaceChildren(...cursor())
    }
  }
}
