/** The page itself, in the chunk that the first script asks for. */

import { render } from "preact";
import { App } from "./app";
import { readRoute } from "./navigation/address";
import { watchFirstSteps } from "./setup/setup_state";
import { start } from "./start";
import { waitForFirstFrames } from "./ui/first_frames";
import { watchToday } from "./usage/usage_today";

if (readRoute().session !== null) waitForFirstFrames();
// Before the first drawing, so that what has come already is part of it.
void start();
render(<App />, document.getElementById("page")!);
watchFirstSteps();
watchToday();
