/**
 * For `node --import`, before a program that does nothing but simulate: Effect then finds no async hooks, and makes no
 * resource for each suspension of a fiber, which nobody in a simulation looks at.
 */
interface Host {
  getBuiltinModule?: (name: string) => unknown
}

const host = (globalThis as { readonly process?: Host }).process
const real = host?.getBuiltinModule

if (host !== undefined && real !== undefined) {
  host.getBuiltinModule = (name) => name === "node:async_hooks" ? undefined : real.call(host, name)
}
