/** Where this page is below its host. Two servers of one host share what a browser keeps by names. */

const path = globalThis.location?.href === undefined ? "/" : new URL(".", location.href).pathname;

/** The name that something has for this server alone. */
export function ownName(name: string): string {
  return path === "/" ? name : `${name} ${path}`;
}
