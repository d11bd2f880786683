/** Prints the hashes of as many rehearsals as it is told: run in a process of its own, to be compared. */
import { rehearse } from "../../src/sim/rehearsal.ts"

console.log(JSON.stringify(Array.from({ length: Number(process.argv[2]) }, (_, seed) => rehearse({ seed }).hash)))
