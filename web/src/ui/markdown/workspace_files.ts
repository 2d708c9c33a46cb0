/**
 * Links and pictures that name a file of the workspace. A link leads to the file in the page; a
 * picture comes from the server. A picture from anywhere else becomes a link: nothing is fetched
 * from elsewhere by itself, because that would tell who reads.
 */

import type { MarkdownIt } from "markdown-it";

/** What an address of a file begins with; the rest is its path, encoded. */
export const FILE_ADDRESS = "#file=";

/** What a text is rendered with. */
export type RenderEnvironment = {
  /** The address of a picture of the workspace; without it there is no workspace. */
  readonly picture?: (path: string) => string;
};

/** The path in the workspace that a link names; null if it names something else. */
export function workspacePath(address: string): string | null {
  if (address === "" || /^[a-z][a-z0-9+.-]*:|^[/#?~\\]/i.test(address)) return null;
  let path: string;
  try {
    path = decodeURIComponent(address.split(/[?#]/, 1)[0]!);
  } catch {
    return null;
  }
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === ".." && names.pop() === undefined) return null;
    if (name !== ".." && name !== "." && name !== "") names.push(name);
  }
  return names.length === 0 ? null : names.join("/");
}

/** The path that an address of the page names; null if it is none of a file. */
export function pathOf(address: string): string | null {
  if (!address.startsWith(FILE_ADDRESS)) return null;
  return decodeURIComponent(address.slice(FILE_ADDRESS.length));
}

const pictureOf = (env: RenderEnvironment | object | undefined): RenderEnvironment["picture"] =>
  (env as RenderEnvironment | undefined)?.picture;

const fileAddress = (path: string): string => FILE_ADDRESS + encodeURIComponent(path);

export function addWorkspaceFiles(markdown: MarkdownIt): void {
  const { rules } = markdown.renderer;
  const { escapeHtml } = markdown.utils;
  rules.link_open = (tokens, index, options, env, self) => {
    const token = tokens[index]!;
    const path = workspacePath(String(token.attrGet("href") ?? ""));
    if (path === null || pictureOf(env) === undefined) {
      token.attrSet("target", "_blank");
      token.attrSet("rel", "noopener noreferrer");
    } else {
      token.attrSet("href", fileAddress(path));
      token.attrSet("class", "markdown-file");
    }
    return self.renderToken(tokens, index, options);
  };
  rules.image = (tokens, index, options, env, self) => {
    const token = tokens[index]!;
    const address = String(token.attrGet("src") ?? "");
    const alt = self.renderInlineAsText(token.children ?? [], options, env ?? {});
    const path = workspacePath(address);
    const picture = pictureOf(env);
    if (path !== null && picture !== undefined) {
      const shown = escapeHtml(picture(path));
      return `<a class="markdown-file" href="${fileAddress(path)}"><img src="${shown}" alt="${escapeHtml(alt || path)}" loading="lazy"></a>`;
    }
    if (!/^https?:/i.test(address)) return escapeHtml(alt);
    return `<a class="markdown-remote" href="${escapeHtml(address)}" target="_blank" rel="noopener noreferrer">${escapeHtml(alt || address)}</a>`;
  };
}
