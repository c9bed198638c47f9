extension SalvageReport {
  /// How much of the store was saved, from 0 to 100; 100 only where everything was, beyond doubt.
  ///
  /// The share of the rows that are in the result, a doubtful one counted as a half, among all that the store held as far
  /// as that is known; less up to a fifth for references that were cut, in proportion to the rows. Rows that fit no table
  /// and rows that were set aside count as rows the store held and the result lacks. Rounded down, but never to 0 where
  /// anything was recovered. It is as exact as the number of lost rows is.
  public var score: Int {
    if isComplete { return 100 }
    let setAside = rebuild?.setAside.reduce(0) { $0 + $1.count } ?? 0
    let inResult = Double(max(0, recovered - setAside))
    let certain = inResult - 0.5 * Double(min(doubtful, max(0, recovered - setAside)))
    let all = Double(recovered) + Double(lost) + Double(unplacedRows)
    guard all > 0, certain > 0 else { return 0 }
    let referenceLoss = min(1, Double(referencesCut) / max(1, inResult))
    let value = 100 * certain / all * (1 - 0.2 * referenceLoss)
    return min(99, max(1, Int(value)))
  }
}
