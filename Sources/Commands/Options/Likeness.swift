enum Likeness {
  private static let lengthLimit = 64

  /// Returns the closest word, if similar.
  ///
  /// One letter in three may be replaced, missing, added or swapped with its neighbour; a unique prefix of three
  /// letters or an added suffix counts too.
  static func nearest(to word: String, among words: [String]) -> String? {
    let word = word.lowercased()
    guard !word.isEmpty, word.count <= lengthLimit else { return nil }
    let limit = max(1, word.count / 3)
    var best: (word: String, distance: Int)?
    for candidate in words where candidate.count <= lengthLimit {
      let distance = distance(Array(word), Array(candidate.lowercased()))
      if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    if let best { return best.word }
    let longer = words.filter { $0.lowercased().hasPrefix(word) }
    if word.count >= 3, longer.count == 1 { return longer.first }
    let shorter = words.filter { $0.count >= 3 && word.hasPrefix($0.lowercased()) }
    return shorter.max { $0.count < $1.count }
  }

  /// Optimal string alignment.
  static func distance(_ left: [Character], _ right: [Character]) -> Int {
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var before: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var next = [row]
      for column in 1...right.count {
        var least = min(last[column] + 1, next[column - 1] + 1)
        least = min(least, last[column - 1] + (left[row - 1] == right[column - 1] ? 0 : 1))
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          least = min(least, before[column - 2] + 1)
        }
        next.append(least)
      }
      (before, last) = (last, next)
    }
    return last[right.count]
  }

  /// Prefixes a hint with the closest word to the first unknown one.
  static func hint(_ hint: String, for given: [String], among words: [String]) -> String {
    let wrong = given.first { !words.contains($0) }
    let question = wrong.map { Self.question($0, among: words) } ?? ""
    return question.isEmpty ? hint : "\(question.dropFirst()) \(hint)"
  }

  /// Asks whether the closest word was meant, after a space; empty without one.
  static func question(_ word: String, among words: [String]) -> String {
    nearest(to: word, among: words).map { " Did you mean '\($0)'?" } ?? ""
  }
}
