/* A library that is no plug-in. */
int nothing_of_attest(void) { return 1; }
