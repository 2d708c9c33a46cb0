/** Providers that speak as OpenAI does, and where they are found. */

export interface KnownProvider {
  readonly name: string;
  readonly title: string;
  readonly address: string;
}

export const PROVIDERS: readonly KnownProvider[] = [
  { name: "openai", title: "OpenAI", address: "https://api.openai.com/v1" },
  { name: "openrouter", title: "OpenRouter", address: "https://openrouter.ai/api/v1" },
  { name: "mistral", title: "Mistral", address: "https://api.mistral.ai/v1" },
  { name: "groq", title: "Groq", address: "https://api.groq.com/openai/v1" },
  { name: "deepseek", title: "DeepSeek", address: "https://api.deepseek.com/v1" },
];

export const OTHER = "other";

/** What a provider of one's own is called: by its host and port, as far as a name may be written so. */
export function nameOf(address: string): string {
  let host = "";
  try {
    host = new URL(address).host;
  } catch {
    return "custom";
  }
  const listed = PROVIDERS.find((provider) => new URL(provider.address).host === host);
  if (listed !== undefined) return listed.name;
  const name = host
    .toLowerCase()
    .replace(/^(api|www)\./, "")
    .replace(/[^a-z0-9_-]+/g, "-")
    .slice(0, 40);
  return /^[a-z]/.test(name) ? name : `at-${name}`.slice(0, 40);
}
