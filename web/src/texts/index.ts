/** The catalogue in use. Every visible text comes from here, so another language is another file. */

export { en as texts } from "./en";
