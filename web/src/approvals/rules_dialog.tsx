/** The rules in a dialog, for those who are asked for an approval right now. */

import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { RulesList } from "./rules_list";
import { rulesShown } from "./rules_shown";

export function RulesDialog() {
  return rulesShown.value ? <Shown /> : null;
}

function Shown() {
  const close = (): void => {
    rulesShown.value = false;
  };
  return (
    <Dialog title={texts.rules.title} onClose={close} kind="rules-dialog">
      <RulesList />
      <div class="layout-buttons">
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}
