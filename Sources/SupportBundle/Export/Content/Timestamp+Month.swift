internal import Platform

extension Timestamp {
  /// A text in which every date and time of digits is that of the first moment of its month, in as many characters: those of RFC
  /// 3339, those for people, and those in the names of quarantined stores and backups.
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

  /// Whether bytes look like a form, in which 0 stands for any digit.
  private static func isLike(_ form: String, _ bytes: [UInt8], at start: Int) -> Bool {
    let form = form.utf8
    return start + form.count <= bytes.count
      && zip(form, bytes[start...]).allSatisfy { $0 == 0x30 ? isDigit($1) : $0 == $1 }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
