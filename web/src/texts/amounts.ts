/** Numbers and times as a person reads them, in the language of the page. */

import { language, locale } from "./language";

const inLanguage = (text: string): string => (language === "de" ? text.replace(".", ",") : text);

const decimal = (value: number, digits: number): string => inLanguage(value.toFixed(digits));

/** With at most two decimals, and none that is zero. */
export const shortNumber = (value: number): string => inLanguage(String(Number(value.toFixed(2))));

export const wholeNumber = (value: number): string => value.toLocaleString(locale);

export function seconds(value: number): string {
  if (value < 0.001) return "0 ms";
  if (value < 1) return `${Math.round(value * 1_000)} ms`;
  if (value < 10) return `${decimal(value, 1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
}

/** For what still runs: whole seconds, so that it does not flicker. */
export function elapsed(value: number): string {
  return value < 60 ? `${Math.max(0, Math.floor(value))} s` : seconds(Math.floor(value));
}

export function tokens(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 10_000) return `${decimal(value / 1_000, 1).replace(/[.,]0/, "")}k`;
  if (value < 1_000_000) return `${Math.round(value / 1_000)}k`;
  return `${decimal(value / 1_000_000, 1)}M`;
}

export function bytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 1_000_000) return `${Math.round(value / 1_000)} kB`;
  return `${decimal(value / 1_000_000, 1)} MB`;
}

export function money(value: number): string {
  const least = value > 0 && value < 0.01;
  const amount = decimal(least ? 0.01 : value, 2);
  return (least ? "< " : "") + (language === "de" ? `${amount} $` : `$${amount}`);
}

/** Made at its first use: the first of them takes a browser 10 to 20 ms, and the next ones nothing. */
function times(options: Intl.DateTimeFormatOptions): (at: number) => string {
  let format: Intl.DateTimeFormat | null = null;
  return (at) => (format ??= new Intl.DateTimeFormat(locale, options)).format(at * 1_000);
}

export const clockTime = times({ hour: "2-digit", minute: "2-digit" });
export const preciseTime = times({ timeStyle: "medium" });
export const dayName = times({ weekday: "long", day: "numeric", month: "short" });
export const fullTime = times({ dateStyle: "medium", timeStyle: "short" });

/** With the day only if that is another than today. */
export function shortTime(at: number, now = Date.now()): string {
  const isToday = new Date(at * 1_000).toDateString() === new Date(now).toDateString();
  return isToday ? clockTime(at) : fullTime(at);
}
