/** What was allowed for always, each rule in words, and the way to take it back. */

import { useEffect, useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, Problem } from "../api/problem";
import type { ApprovalRule, ApprovalRules } from "../api/types";
import { texts } from "../texts";
import { shortTime } from "../texts/amounts";
import { Button } from "../ui/button";

export function RulesList() {
  const [answer, setAnswer] = useState<ApprovalRules | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [removing, setRemoving] = useState<string | null>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    let mounted = true;
    keryx.rules().then(
      (rules) => mounted && setAnswer(rules),
      (error: unknown) => mounted && setProblem(asProblem(error)),
    );
    return () => {
      mounted = false;
    };
  }, []);
  const remove = async (rule: ApprovalRule): Promise<void> => {
    setRemoving(rule.rule_id);
    try {
      await gone(rule.rule_id);
      setProblem(null);
      setAnswer((now) => now && { ...now, rules: now.rules.filter(({ rule_id }) => rule_id !== rule.rule_id) });
      title.current?.focus();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setRemoving(null);
  };
  return (
    <div class="rules-list">
      <h2 ref={title} tabIndex={-1}>
        {texts.rules.title}
      </h2>
      {problem === null ? null : (
        <p class="text-error" role="alert">
          {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
        </p>
      )}
      {answer === null ? (
        problem === null ? (
          <p class="text-dim">{texts.loading}</p>
        ) : null
      ) : (
        <>
          <p class="text-dim" role="status">
            {answer.rules.length === 0 ? texts.rules.none : texts.rules.lead}
          </p>
          <ul class="rules-list-items" aria-label={texts.rules.title}>
            {answer.rules.map((rule) => (
              <li key={rule.rule_id}>
                <span class="rules-list-says">
                  <span dir="auto">{rule.says}</span>
                  {rule.made_at === null ? null : <small>{texts.rules.since(shortTime(rule.made_at))}</small>}
                </span>
                <Button
                  label={texts.rules.removeRule(rule.says)}
                  busy={removing !== null}
                  onClick={() => void remove(rule)}
                >
                  {texts.rules.remove}
                </Button>
              </li>
            ))}
          </ul>
          <Configured rules={answer.configured} />
        </>
      )}
    </div>
  );
}

/** It is not there any more, whoever removed it. */
async function gone(ruleId: string): Promise<void> {
  try {
    await keryx.removeRule(ruleId);
  } catch (error) {
    if (!(error instanceof Problem && error.kind === "not_found")) throw error;
  }
}

function Configured({ rules }: { rules: ApprovalRules["configured"] }) {
  if (rules.length === 0) return null;
  return (
    <section aria-label={texts.rules.configured}>
      <h3>{texts.rules.configured}</h3>
      <p class="text-dim">{texts.rules.configuredLead}</p>
      <ul class="rules-list-items">
        {rules.map((rule) => (
          <li key={`${rule.verdict} ${rule.tool} ${rule.pattern}`}>
            <span class="rules-list-says">
              {texts.rules.verdicts[rule.verdict]} <bdi>{rule.says}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
