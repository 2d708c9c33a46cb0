/** Starts the page: asks for what it will show, then reads the rest of its own code. */

import { prefetch } from "./session/prefetch";
import { clockTime } from "./texts/amounts";
import "./styles.css";

prefetch();
void import("./page");
// The browser's tables of dates take a frame to load, and nothing else is to do while code comes.
clockTime(0);
