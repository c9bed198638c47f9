internal import RecoveryKit

/// What a recovery kit knows of the store that is being salvaged.
struct KitEvidence {
  /// How it served, for the report.
  var use: SalvageReport.KitUse

  /// The rows of a table that are lost; nil where the kit does not know the table.
  func losses(
    of index: Int, _ harvest: RowHarvest, _ estimate: LossEstimate, numbers: [Int64]
  ) throws(SalvageError) -> EntityAccounts.Losses? {
    nil
  }
}
