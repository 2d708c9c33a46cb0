/** "1 Aufruf", "2 Aufrufe": German has too many plurals to form one from the other. */
export const plural = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;
