//===- random_state.h - Generators that routines draw from ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DRT_RANDOM_STATE_H
#define DRT_DRT_RANDOM_STATE_H

// A distribution beside those of drt.h, of drt_random alone: no numbers, but where the generator stands, for a routine
// that draws as many as it needs. Six words (DRT_I32) as drt_random_state has them: the position, lowest word first,
// then the key. What the run reserves is given instead of minval, an int64: positions of four words.
enum { DRT_RANDOM_STATE = 4 };

#endif // DRT_DRT_RANDOM_STATE_H
