/** The skills, where each comes from, and those that cannot be used, with the reason. */

import * as keryx from "../api/client";
import type * as wire from "../api/wire";
import { texts } from "../texts";
import { configuration } from "../texts/configuration";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";

const words = configuration.skills;

const origin = ({ workspace, profile }: wire.SkillEntry): string => {
  if (workspace !== null) {
    return words.from(workspace);
  }
  return profile === null ? words.own : words.ofProfile(profile);
};

export function SkillsSection() {
  const { value, problem } = useRequest(() => keryx.skills(), []);
  if (value === null) {
    return problem === null ? <p class="text-dim">{texts.loading}</p> : <Refusal problem={problem} />;
  }
  return (
    <>
      {value.skills.length === 0 ? <p role="status">{words.none(value.folder)}</p> : null}
      <ul class="settings-screen-items" aria-label={words.list}>
        {value.skills.map((skill) => (
          <li key={skill.folder} class="settings-screen-item">
            <div class="settings-screen-item-head">
              <b dir="auto">{skill.name}</b>
              <span class="settings-screen-about">
                <span dir="auto">{skill.description}</span>
                <span>{origin(skill)}</span>
              </span>
            </div>
          </li>
        ))}
      </ul>
      {value.problems.length === 0 ? null : (
        <section aria-label={words.broken}>
          <h3>{words.broken}</h3>
          <ul class="settings-screen-problems">
            {value.problems.map((text) => (
              <li key={text} class="text-error">
                {text}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
