/** The page itself, in the chunk that the first script asks for. */

import { render } from "preact";
import { App } from "./app";
import { watchFirstSteps } from "./setup/steps";
import { start } from "./state/app";
import { watchToday } from "./usage/today";

render(<App />, document.getElementById("page")!);
watchFirstSteps();
void start();
watchToday();
