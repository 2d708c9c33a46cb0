/** The page itself, in the chunk that the first script asks for. */

import { render } from "preact";
import { App } from "./app";
import { watchFirstSteps } from "./setup/setup_state";
import { start } from "./start";
import { watchToday } from "./usage/usage_today";

render(<App />, document.getElementById("page")!);
watchFirstSteps();
void start();
watchToday();
