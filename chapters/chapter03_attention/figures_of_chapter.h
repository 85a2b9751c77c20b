// figures_of_chapter.h: the chapter's three figures as files.
#ifndef CHAPTER03_FIGURES_OF_CHAPTER_H
#define CHAPTER03_FIGURES_OF_CHAPTER_H

#include "demo.h"

// Draws them into the folder, which is made if it is not there: PNG and SVG. Returns the program's
// exit status; 1 with a message where the program was built without cairo.
int figures_of_chapter(demo *d, const char *folder);

#endif
