/** Every bound of the HTTP edge that the domain does not set, with its unit. */

/** The largest request body, in bytes as sent. */
export const bodyMaxBytes = 256 * 1_024
/** The most rows of one page, and how many come when the caller does not say. */
export const pageMax = 100
export const pageDefault = 50
/** The most hits of one search, and how many come when the caller does not say. */
export const searchMax = 50
export const searchDefault = 10
/** The longest search text, in UTF-16 code units. */
export const queryMaxLength = 8_192
/** The longest a caller may ask to be held, in seconds. Settings may hold it shorter. */
export const waitMaxSeconds = 30
/** The longest cursor that is looked at, in characters. */
export const cursorMaxLength = 256
/** The longest `Retry-After` that is sent for an event, in seconds. */
export const retryAfterMaxSeconds = 60
/** How long a caller is asked to stay away after 503, in seconds. */
export const comeBackSeconds = 1
/** How long the headers, and the whole, of a request may take to arrive, in milliseconds. */
export const headersTimeoutMs = 15_000
export const requestTimeoutMs = 60_000
/** How long an idle connection is kept, in milliseconds: longer than proxies do, so that they close first. */
export const keepAliveTimeoutMs = 65_000
/** How long requests in flight may go on, in milliseconds, once no more are taken. */
export const inFlightTimeoutMs = 10_000
/** How often those bounds are looked at, and how long a refused connection may linger, in milliseconds. */
export const timeoutCheckMs = 5_000
export const lingerMs = 1_000
