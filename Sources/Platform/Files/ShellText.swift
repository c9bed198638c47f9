package import SystemPackage

/// Quotes a path for a shell where needed.
///
/// Control characters become octal escapes in `$'…'`, which bash, zsh and the POSIX shell of 2024 read.
package func shellQuoted(_ path: FilePath) -> String {
  // A leading dash would make it an option.
  let path =
    path.components.first?.string.hasPrefix("-") == true && path.root == nil ? FilePath(".").pushing(path) : path
  let bytes = path.rawBytes
  if !bytes.isEmpty, bytes.allSatisfy(isPlain) { return path.string }
  let text = path.string
  if FilePath(text) == path, printable(text) == text {
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
  var result = "$'"
  for byte in bytes {
    if byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "'"), byte != UInt8(ascii: "\\") {
      result.unicodeScalars.append(Unicode.Scalar(byte))
    } else {
      let digits = String(byte, radix: 8)
      result += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
    }
  }
  return result + "'"
}

private func isPlain(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
    true
  default: false
  }
}
