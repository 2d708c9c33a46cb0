/** The dialogs over the page that most visits never see; a chunk of its own. */

import { RulesDialog } from "./approvals/rules_dialog";
import { HelpDialog } from "./composer/help_dialog";
import { MemoryDialog } from "./memory/memory_dialog";
import { ModelsDialog } from "./setup/models_dialog";
import { UsageDialog } from "./usage/usage_dialog";

export function Dialogs() {
  return (
    <>
      <UsageDialog />
      <RulesDialog />
      <MemoryDialog />
      <ModelsDialog />
      <HelpDialog />
    </>
  );
}
