/* report/page.h - the files of the page, which CMake puts into the library (cmake/page.c.in). */
#ifndef TN_REPORT_PAGE_H
#define TN_REPORT_PAGE_H

#include <stddef.h>

extern const unsigned char tn_page_html[], tn_page_style[], tn_page_script[];
extern const size_t        tn_page_html_size, tn_page_style_size, tn_page_script_size;

#endif
