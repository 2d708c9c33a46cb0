/** Starts the page. */

import { render } from "preact";
import { App } from "./app";
import { beginFirstSteps } from "./setup/steps";
import { start } from "./state/app";
import "./styles/index.css";

render(<App />, document.getElementById("page")!);
void start().then(beginFirstSteps);
