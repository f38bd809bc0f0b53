/* pipeline/forms.c - the rows of the table of forms: what each is made of and how to have its values. */
#include "store/forms.h"
#include "store/sparse.h"

const tn_form_info tn_form_dense = {
    .name = "dense", .roles = { "data" }, .required = 1,
    .check = tn_check_dense,
};

const tn_form_info tn_form_coo = {
    .name = "coo", .roles = { "values", "indices" }, .required = 2, .sparse = true,
    .check = tn_check_coo, .check_data = tn_coo_check_data,
};

const tn_form_info tn_form_csr = {
    .name = "csr", .roles = { "values", "indices", "indptr" }, .required = 3, .sparse = true,
    .check = tn_check_csr, .check_data = tn_csr_check_data,
};

const tn_form_info tn_form_scaled = {
    .name = "scaled", .roles = { "data", "scale", "tscale", "zero", "offset", "meta", "mask", "index" },
    .required = 1, .scaled = true, .check = tn_check_scaled,
};

const tn_form_info tn_form_blocks = {
    .name = "blocks", .roles = { "data" }, .required = 1,
    .scaled = true, .check = tn_check_scaled,
};
