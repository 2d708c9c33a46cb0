/** Starts the page. */

import { render } from "preact";
import { App } from "./app";
import { watchFirstSteps } from "./setup/steps";
import { start } from "./state/app";
import { watchToday } from "./usage/today";
import "./styles/index.css";

render(<App />, document.getElementById("page")!);
watchFirstSteps();
void start();
watchToday();
