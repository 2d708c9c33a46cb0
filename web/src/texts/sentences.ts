/** Sentences that are put together from parts. */

/** What a server or a tool says, as a sentence. Only a plain first word gets a capital letter: names keep their spelling. */
export function sentence(words: string): string {
  const whole = words.replace(/^\p{Ll}+(?=[\s,;’']|$)/u, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return whole === "" || /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}

/** "1 call", "2 calls". */
export function plural(count: number, one: string, more = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
}
