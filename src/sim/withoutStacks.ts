/** Programs make errors all the time, and Effect one for each call of a named function: nobody reads where they were made. */

/** Runs something in which errors do not say where they were made, which costs more than all else about them. */
export const withoutStacks = <A>(body: () => A): A => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return body()
  } finally {
    Error.stackTraceLimit = limit
  }
}
