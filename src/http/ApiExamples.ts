/** Bodies to begin with, as the OpenAPI document shows them. A test sends each of them. */

interface Example {
  readonly summary: string
  readonly value: object
}

/** By the name of the body's schema. */
export const examples: Record<string, Record<string, Example>> = {
  AddMemory: {
    conversation: {
      summary: "Let a model find what is worth remembering",
      value: {
        user_id: "ana",
        messages: [
          { role: "user", content: "I moved to Lisbon in March, and I am allergic to peanuts." },
          { role: "assistant", content: "Good to know. What do you do there?" },
          { role: "user", content: "I work as a marine biologist." }
        ]
      }
    },
    verbatim: {
      summary: "Store a text as it is",
      value: { user_id: "ana", infer: false, content: "Prefers answers in Portuguese.", metadata: { topic: "language" } }
    }
  },
  EditMemory: {
    text: { summary: "Change what it says", value: { memory: "Prefers answers in English." } },
    metadata: { summary: "Replace its metadata", value: { metadata: { topic: "language", checked: true } } }
  },
  Search: {
    words: { summary: "In other words", value: { user_id: "ana", query: "which foods must she avoid?", limit: 3 } }
  }
}
