/** The command line of the simulator: `npm run sim -- --help`. */
import { runMain } from "./cli/Cli.ts"

runMain({
  module: new URL("harness.ts", import.meta.url),
  stores: { pglite: new URL("sql/harness.ts", import.meta.url) },
  scenarios: new URL("scenarios/", import.meta.url),
  corpus: new URL("corpus/", import.meta.url),
  mutants: new URL("../../test/mutants/", import.meta.url),
  root: new URL("../../", import.meta.url),
  command: "npm run sim --",
  main: "src/sim/main.ts",
  sources: ["src", "package.json"]
})
