/// Takes the numbers of rows out of texts, as they are values of the user's where an app chooses its keys.
enum RowNumbers {
  /// A text with N for every number that is said to be a row's.
  static func removed(from text: String) -> String {
    guard text.utf8.contains(where: { (0x30...0x39).contains($0) }) else { return text }
    return text.replacing(/(?i)\b(rows?|rowids?|keys?) -?[0-9]+(?:[-–][0-9]+)?/) { "\($0.1) N" }
  }

  /// A line of `integrity_check`, with N also for every other number of more digits than pages have.
  static func removed(fromCheck line: some StringProtocol) -> String {
    removed(from: String(line)).replacing(/-?[0-9]{7,}/, with: "N")
  }
}
