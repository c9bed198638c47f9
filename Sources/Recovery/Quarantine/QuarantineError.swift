package import StoreFiles

/// A request of the quarantine that cannot be met.
package typealias QuarantineError = Failure<QuarantineErrorKind>

/// Why a request of the quarantine cannot be met.
package enum QuarantineErrorKind: String, FailureKind {
  case notFound = "not-in-quarantine"
  case ambiguous = "ambiguous-id"
  case nothingToQuarantine = "nothing-to-quarantine"
  case placeTaken = "place-taken"
  case receiptUnreadable = "receipt-unreadable"
  case evidenceChanged = "evidence-changed"
  case evidenceMissing = "evidence-missing"
  case catalogueUnreadable = "catalogue-unreadable"
  case notSalvaged = "not-salvaged"
  case salvageUnusable = "salvage-unusable"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "use the quarantine"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .notFound: "List what there is with: lazaret quarantine list"
    case .ambiguous: "Give its path instead."
    case .nothingToQuarantine: "Check the path."
    case .placeTaken:
      "Release it with --replace, which quarantines what is there first, or give another place with --to."
    case .receiptUnreadable:
      "The store beside it is not affected; it can be examined, salvaged and released without its receipt."
    case .evidenceChanged: "Copy the files elsewhere by hand if you want them as they are now."
    case .evidenceMissing:
      "Put its files back from a copy, under their names; what is left of it is removed with: lazaret quarantine discard ID"
    case .catalogueUnreadable:
      "Move it away; the quarantined stores themselves are not affected, and the next quarantine makes a new one."
    case .notSalvaged: "Salvage it first."
    case .salvageUnusable: "Salvage it again with the app's current model."
    }
  }
}
