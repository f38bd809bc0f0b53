// read.js FILE...: what numpy-parser reads of .npy files.
const fs = require("fs");
const { fromArrayBuffer } = require("numpy-parser");
for (const path of process.argv.slice(2)) {
    const bytes = fs.readFileSync(path);
    const { data, shape } = fromArrayBuffer(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    console.log(`${data.constructor.name} [${shape.join(", ")}] ${data.reduce((a, b) => a + Number(b), 0)}`);
}
