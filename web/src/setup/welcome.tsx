/** The start page of a home with no model: the tour, or a model of one's own. */

import { Button } from "../parts/button";
import { attempt } from "../state/app";
import { texts } from "../texts";
import { PasteKey, Servers } from "./models";
import { takeTour } from "./steps";

export function Welcome() {
  const { title, lead, tour } = texts.setup;
  return (
    <div class="welcome">
      <div class="inner">
        <h1>{title}</h1>
        <p class="dim">{lead}</p>
        <div class="cards">
          <section class="card tourcard" aria-label={tour.title}>
            <h2>{tour.title}</h2>
            <p class="dim">{tour.lead}</p>
            <Button kind="main" onClick={() => void attempt(() => takeTour())}>
              {tour.start}
            </Button>
          </section>
          <Servers />
          <PasteKey />
        </div>
      </div>
    </div>
  );
}
