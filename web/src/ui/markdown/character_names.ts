/**
 * The names of characters, such as `&copy;`, from the browser, which knows them all. It stands in for the
 * package that the Markdown parser would use: its table has 18 KB and is unpacked before the first drawing.
 */

let element: HTMLElement | null = null;

/** The character of a reference that is one name with its `&` and `;`, or the reference itself. */
export function decodeHTMLStrict(reference: string): string {
  element ??= document.createElement("i");
  element.innerHTML = reference;
  const text = element.textContent;
  // A browser also takes names that are longer than what it knows (`&notit;`): then the semicolon is left.
  return text.endsWith(";") && reference !== "&semi;" ? reference : text;
}
