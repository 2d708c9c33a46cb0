/** Ids that the page mints, so that asking twice does once. */

/** Written out because crypto.randomUUID is missing where the page is not served securely. */
function hex(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const newKey = (): string => hex();
export const newSessionId = (): string => `s-${hex()}`;
