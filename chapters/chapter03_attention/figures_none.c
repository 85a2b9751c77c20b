// figures_none.c: what --figures says where the program was built without cairo.
#include <stdio.h>
#include <stdlib.h>

#include "figures_of_chapter.h"

int figures_of_chapter(demo *d, const char *folder)
{
    (void)folder;
    fprintf(stderr, "chapter03_attention: %s\n", d->text[T_FIG_NONE]);
    return EXIT_FAILURE;
}
