extension SalvageReport {
  /// How much of the store was recovered, from 0 to 100; 100 only where everything was, beyond doubt.
  ///
  /// It is kept for programs that read it, and shown nowhere: the numbers of ``count`` say more.
  ///
  /// The share of the rows that are in the result, a doubtful one counted as a half, among all that the store held as far
  /// as that is known; less up to a fifth for references that were cut, in proportion to the rows. Rows that fit no table
  /// and rows that were set aside count as rows the store held and the result lacks. Rounded down, but never to 0 where
  /// anything was recovered. It is as exact as the number of lost rows is.
  public var score: Int {
    if isComplete { return 100 }
    let inResult = Double(recovered)
    let leftOut = rebuild?.setAside.reduce(Int64(0)) { $0.addingClamped($1.count) } ?? 0
    let setAside = Double(max(leftOut, count.setAside))
    let certain = inResult - 0.5 * Double(min(doubtful, recovered))
    let all = Double(recovered) + Double(lost) + Double(unplacedRows) + setAside
    guard all > 0, certain > 0 else { return 0 }
    let referenceLoss = min(1, Double(referencesCut) / max(1, inResult))
    let value = 100 * certain / all * (1 - 0.2 * referenceLoss)
    return min(99, max(1, Int(value)))
  }
}
