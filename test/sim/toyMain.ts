/** The command line of the simulator on the toy. */
import { runMain } from "../../src/sim/cli/Cli.ts"

runMain({
  module: new URL("toyHarness.ts", import.meta.url),
  scenarios: new URL("toyScenarios/", import.meta.url),
  corpus: new URL("toyCorpus/", import.meta.url),
  mutants: new URL("toyMutants/", import.meta.url),
  root: new URL("../../", import.meta.url),
  command: "node test/sim/toyMain.ts",
  main: "test/sim/toyMain.ts",
  patienceMs: 5_000,
  sources: ["src", "test/sim", "package.json"]
})
