internal import Platform

extension Timestamp {
  /// Replaces dates and times by the start of the month, in the same length.
  ///
  /// Covers RFC 3339, the readable form, and names of quarantined stores and backups.
  static func inMonths(_ text: String) -> String {
    var bytes = Array(text.utf8)
    var index = 0
    while index + 10 <= bytes.count {
      guard index == 0 || !isDigit(bytes[index - 1]), isLike("0000-00-00", bytes, at: index) else {
        index += 1
        continue
      }
      bytes.replaceSubrange((index + 8)..<(index + 10), with: "01".utf8)
      index += 10
      var end = index
      if isLike("-00-00-00", bytes, at: index) {
        end = index + 9
      } else if isLike("T00:00", bytes, at: index) || isLike(" 00:00", bytes, at: index) {
        end = index + 6
        while end < bytes.count, isDigit(bytes[end]) || bytes[end] == 0x2e || bytes[end] == 0x3a { end += 1 }
      }
      for place in index..<end where isDigit(bytes[place]) { bytes[place] = 0x30 }
      index = end
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether bytes match a form, with 0 for any digit.
  private static func isLike(_ form: String, _ bytes: [UInt8], at start: Int) -> Bool {
    let form = form.utf8
    return start + form.count <= bytes.count
      && zip(form, bytes[start...]).allSatisfy { $0 == 0x30 ? isDigit($1) : $0 == $1 }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
