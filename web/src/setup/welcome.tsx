/** The start page of a home with no model: the tour, or a model of one's own. */

import { texts } from "../texts";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";
import { LocalModelCard } from "./local_model_card";
import { PasteKey, Servers } from "./model_sources";
import { takeTour } from "./setup_state";

export function Welcome() {
  const { title, lead, tour } = texts.setup;
  return (
    <div class="welcome">
      <div class="welcome-inner">
        <h1>{title}</h1>
        <p class="text-dim">{lead}</p>
        <div class="model-sources">
          <section class="model-sources-card welcome-tour" aria-label={tour.title}>
            <h2>{tour.title}</h2>
            <p class="text-dim">{tour.lead}</p>
            <Button kind="main" onClick={() => void attempt(() => takeTour())}>
              {tour.start}
            </Button>
          </section>
          <LocalModelCard />
          <Servers />
          <PasteKey />
        </div>
      </div>
    </div>
  );
}
