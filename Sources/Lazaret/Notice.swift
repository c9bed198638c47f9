/// Words for the app's user, ready to show, and keys to translate them by.
public struct Notice: Sendable, Hashable, Codable {
  /// A choice that the app may offer.
  public struct Action: Sendable, Hashable, Codable {
    /// The key to translate the title by; also what tells the actions apart.
    public var key: String

    /// The words on the button.
    public var title: String
  }

  /// The key to translate title and message by: `lazaret.notice.damaged`, `.incompatible`, `.migration`, `.leftovers` or `.set-aside`.
  public var key: String

  /// The heading of an alert.
  public var title: String

  /// What happened to the user's data, in two or three sentences.
  public var message: String

  /// What the app may offer, the usual choice first.
  public var actions: [Action]

  /// The report of a migration that failed, for the support; nil where there is none.
  public var report: PathText?

  /// The notice for a store that lies in quarantine for a reason, while an empty one is in its place.
  static func setAside(_ reason: Receipt.Reason, report: PathText? = nil) -> Notice {
    let (key, message) = words(for: reason.code)
    return Notice(
      key: "lazaret.notice.\(key)", title: "Your data was set aside", message: message,
      actions: [
        Action(key: "lazaret.action.continue", title: "Continue"),
        Action(key: "lazaret.action.contact-support", title: "Contact Support"),
      ], report: report)
  }

  private static func words(for code: String) -> (key: String, message: String) {
    switch code {
    case VerdictReason.migrationFailedCode:
      (
        "migration",
        "The file with your data could not be brought to this version of the app. It was not deleted: all of it was set aside, and you start with an empty one. Our support can look at what was set aside."
      )
    case "other-model", "unknown-version", "not-core-data", "lacks-tables", VerdictReason.notMigratableCode:
      (
        "incompatible",
        "The file with your data does not fit this version of the app. It was not deleted: all of it was set aside, and you start with an empty one. Our support can look at what was set aside."
      )
    case QuarantineCase.leftoversCode:
      (
        "leftovers",
        "The file with your data is missing; only parts of it were found. They were not deleted: they were set aside, and you start with an empty file. Our support can look at what was set aside."
      )
    case QuarantineCase.requestCode:
      (
        "set-aside",
        "The file with your data was set aside on request. It was not deleted, and you start with an empty one. Our support can look at what was set aside."
      )
    default:
      (
        "damaged",
        "The file with your data is damaged and could not be opened. It was not deleted: all of it was set aside, and you start with an empty one. Our support can look at what was set aside."
      )
    }
  }
}
