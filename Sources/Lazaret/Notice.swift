public import Foundation
import Migration
internal import PersistentStore
package import Platform
import Salvage
package import SystemPackage

/// Text for the app's user, with keys for translation.
public struct Notice: Sendable, Hashable {
  /// A choice that the app may offer.
  public struct Action: Sendable, Hashable {
    /// The translation key and identity.
    public let key: String

    /// The button title.
    public let title: String
  }

  /// The numbers of a notice.
  public struct Counts: Sendable, Hashable {
    /// The recovered records.
    public var recovered: Int64 = 0

    /// The doubtful ones among them.
    public var doubtful: Int64 = 0

    /// The lost records.
    public var lost: Int64 = 0

    /// Whether the number of lost records is estimated.
    public var isEstimate = false

    /// Whether unknown further records may be lost.
    public var hasUnknown = false

    /// The values set aside for lack of a column.
    public var valuesSetAside: Int64 = 0

    /// The values that the app's version cannot hold.
    public var valuesLeftOut: Int64 = 0

    /// The dangling references after a repair.
    public var danglingReferences: Int64 = 0

    /// The records found whole but set aside.
    public var keptBeside: Int64 = 0

    /// The lost pairs of many-to-many relationships.
    public var lostPairs: Int64 = 0

    /// Whether the number of lost pairs is inexact.
    public var isPairEstimate = false

    /// The records of a quarantined sound store; 0 if not counted.
    public var setAside: Int64 = 0

    /// The records that a migration left out with their entity.
    public var leftOut: Int64 = 0

    /// Whether more than half of the records are known to be recovered.
    public var hasMost = false

    init() {}
  }

  /// The translation key, such as `lazaret.notice.salvaged`.
  public let key: String

  /// `damaged`, `incompatible`, `migration`, `repair`, `leftovers`, `set-aside`, `empty`, or nil.
  public let cause: String?

  /// The numbers, which the text leaves out.
  public let counts: Counts

  /// The heading of an alert.
  public let title: String

  /// The account in two or three sentences.
  public let message: String

  /// The possible actions, the usual choice first.
  public let actions: [Action]

  /// The support report of a failed migration.
  public let report: URL?

  package init(_ notice: OpeningNotice, _ events: [OpeningEvent] = []) {
    key = notice.key
    title = notice.title
    message = notice.message
    actions = notice.actions.map { Action(key: $0.key, title: $0.title) }
    report = URL(notice.report)
    cause = events.last { $0.reason != nil }?.reason.map { OpeningNotice.key(for: $0.code) }
    var counts = Counts()
    if let salvage = events.last(where: { $0.salvage != nil })?.salvage {
      counts.recovered = salvage.recovered
      counts.hasMost = salvage.hasMost
      counts.doubtful = salvage.doubtful
      counts.lost = salvage.lost
      counts.isEstimate = !salvage.lostIsExact || salvage.count.hasUnknown
      counts.hasUnknown = salvage.count.hasUnknown
      counts.valuesSetAside = salvage.count.valuesSetAside
      counts.valuesLeftOut = salvage.count.valuesLeftOut
      counts.leftOut = salvage.count.recordsLeftOut
      counts.keptBeside = salvage.count.setAside
      counts.lostPairs = salvage.count.pairs.missing
      counts.isPairEstimate = !salvage.count.pairs.isLostExact
    }
    counts.setAside = events.last { $0.records != nil }?.records ?? 0
    counts.danglingReferences = Int64(events.lazy.compactMap(\.repair).first?.danglingReferences ?? 0)
    counts.leftOut += events.compactMap(\.migration).flatMap(\.removedRows.values).reduce(0) { $0 + Int64($1) }
    self.counts = counts
  }

  init(_ notice: Notice, title: String, message: String, actions: [Action]) {
    key = notice.key
    cause = notice.cause
    counts = notice.counts
    report = notice.report
    self.title = title
    self.message = message
    self.actions = actions
  }
}

extension Notice {
  /// A language of the catalogue.
  public enum Language: String, Sendable, Hashable, CaseIterable {
    /// English.
    case english = "en"

    /// German.
    case german = "de"

    /// French.
    case french = "fr"

    /// Creates the first catalogue language among preferred ones (`Locale.preferredLanguages`).
    public init?(preferred languages: [String] = Locale.preferredLanguages) {
      for language in languages {
        let code = language.prefix { $0 != "-" && $0 != "_" }.lowercased()
        if let known = Self(rawValue: code) {
          self = known
          return
        }
      }
      return nil
    }
  }

  /// Returns the notice in another language.
  ///
  /// For other languages an app translates ``stringCatalogue``.
  public func translated(into language: Language) -> Notice {
    guard language != .english else { return self }
    let words = NoticeWords(language)
    return Notice(
      self, title: words.text("\(key).title") ?? title,
      message: words.message(of: key, cause: cause, hasMost: counts.hasMost) ?? message,
      actions: actions.map { Action(key: $0.key, title: words.text($0.key) ?? $0.title) })
  }

  /// All text as an Xcode string catalogue (`.xcstrings`).
  public static var stringCatalogue: String { NoticeWords.catalogue }
}

struct NoticeWords {
  private let place: Int

  init(_ language: Notice.Language) { place = Notice.Language.allCases.firstIndex(of: language) ?? 0 }

  func text(_ key: String) -> String? { Self.all[key]?[place] }

  /// Returns the message of a notice; nil for an unknown key.
  func message(of key: String, cause: String?, hasMost: Bool) -> String? {
    Self.parts(of: key, cause: cause, hasMost: hasMost)?.compactMap { text("lazaret.part.\($0)") }
      .joined(separator: " ")
  }

  private static func parts(of key: String, cause: String?, hasMost: Bool) -> [String]? {
    let cause = cause.map { ["cause.\($0)"] } ?? []
    switch key.hasPrefix("lazaret.notice.") ? key.dropFirst("lazaret.notice.".count) : "" {
    case "salvaged": return cause + ["all-recovered", "old-kept"]
    case "salvaged-nothing": return cause + ["none-recovered", "start-empty", "old-kept", "support"]
    case "salvaged-unconfirmed": return cause + ["unconfirmed", "old-kept", "support"]
    case "salvaged-with-losses":
      return cause + [hasMost ? "most-recovered" : "part-recovered", "may-lack", "old-kept", "support"]
    case "salvage-later": return cause + ["kept", "later"]
    case "migrated-without": return ["left-out", "old-kept"]
    case "repaired": return ["repaired", "nothing-removed", "old-kept"]
    case "repaired-with-losses": return ["repaired", "may-lack", "old-kept", "support"]
    case "leftovers": return cause + ["kept.leftovers", "support"]
    case "empty": return cause + ["kept.empty", "support"]
    case "damaged", "incompatible", "migration", "repair", "set-aside": return cause + ["kept", "support"]
    case let name where name.hasPrefix("send-report."): return ["send-report", String(name)]
    default: return nil
    }
  }

  static var catalogue: String {
    var strings: [String: Any] = [:]
    for (key, languages) in all {
      var localizations: [String: Any] = [:]
      for (language, words) in zip(Notice.Language.allCases, languages) {
        localizations[language.rawValue] = ["stringUnit": ["state": "translated", "value": words]]
      }
      strings[key] = ["extractionState": "manual", "localizations": localizations]
    }
    let catalogue: [String: Any] = ["sourceLanguage": "en", "strings": strings, "version": "1.0"]
    // String dictionaries always encode.
    let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let data = (try? JSONSerialization.data(withJSONObject: catalogue, options: options)) ?? Data()
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  /// The English, German and French text by key.
  static let all: [String: [String]] = titles.merging(actions) { $1 }.merging(parts) { $1 }

  private static func same(_ english: String, _ german: String, _ french: String) -> [String] {
    [english, german, french]
  }
}

// MARK: - The words

extension NoticeWords {
  private static let setAsideTitle = same(
    "Your data was set aside", "Ihre Daten wurden beiseitegelegt", "Vos données ont été mises de côté")

  private static let reportTitle = same(
    "Send a report to support?", "Bericht an den Support senden?", "Envoyer un rapport à l’assistance ?")

  private static let titles: [String: [String]] = [
    "lazaret.notice.damaged.title": setAsideTitle,
    "lazaret.notice.incompatible.title": setAsideTitle,
    "lazaret.notice.migration.title": setAsideTitle,
    "lazaret.notice.repair.title": setAsideTitle,
    "lazaret.notice.leftovers.title": setAsideTitle,
    "lazaret.notice.set-aside.title": setAsideTitle,
    "lazaret.notice.salvage-later.title": setAsideTitle,
    "lazaret.notice.salvaged-nothing.title": setAsideTitle,
    "lazaret.notice.empty.title": same("Your file was empty", "Ihre Datei war leer", "Votre fichier était vide"),
    "lazaret.notice.salvaged.title": same(
      "Your data was recovered", "Ihre Daten wurden wiederhergestellt", "Vos données ont été récupérées"),
    "lazaret.notice.salvaged-unconfirmed.title": same(
      "Your data was recovered", "Ihre Daten wurden wiederhergestellt", "Vos données ont été récupérées"),
    "lazaret.notice.salvaged-with-losses.title": same(
      "Your data was recovered in part", "Ihre Daten wurden teilweise wiederhergestellt",
      "Vos données ont été récupérées en partie"),
    "lazaret.notice.migrated-without.title": same(
      "Your data was updated", "Ihre Daten wurden aktualisiert", "Vos données ont été mises à jour"),
    "lazaret.notice.repaired.title": same(
      "Your data was repaired", "Ihre Daten wurden repariert", "Vos données ont été réparées"),
    "lazaret.notice.repaired-with-losses.title": same(
      "Your data was repaired in part", "Ihre Daten wurden teilweise repariert",
      "Vos données ont été réparées en partie"),
    "lazaret.notice.send-report.facts.title": reportTitle,
    "lazaret.notice.send-report.damaged-pages.title": reportTitle,
    "lazaret.notice.send-report.scrubbed.title": reportTitle,
    "lazaret.notice.send-report.full.title": reportTitle,
  ]

  private static let actions: [String: [String]] = [
    "lazaret.action.continue": same("Continue", "Fortfahren", "Continuer"),
    "lazaret.action.recover": same("Recover My Data", "Meine Daten wiederherstellen", "Récupérer mes données"),
    "lazaret.action.send-report": same(
      "Send a Report to Support", "Bericht an den Support senden", "Envoyer un rapport à l’assistance"),
    "lazaret.action.contact-support": same("Contact Support", "Support kontaktieren", "Contacter l’assistance"),
    "lazaret.action.send": same("Send", "Senden", "Envoyer"),
    "lazaret.action.show-content": same(
      "Show What Is Sent", "Anzeigen, was gesendet wird", "Afficher ce qui est envoyé"),
    "lazaret.action.not-now": same("Not Now", "Jetzt nicht", "Pas maintenant"),
  ]

  private static let parts: [String: [String]] = [
    "lazaret.part.cause.damaged": same(
      "The file with your data was damaged and could not be opened.",
      "Die Datei mit Ihren Daten war beschädigt und konnte nicht geöffnet werden.",
      "Le fichier contenant vos données était endommagé et n’a pas pu être ouvert."),
    "lazaret.part.cause.incompatible": same(
      "The file with your data does not fit this version of the app.",
      "Die Datei mit Ihren Daten passt nicht zu dieser Version der App.",
      "Le fichier contenant vos données ne convient pas à cette version de l’app."),
    "lazaret.part.cause.migration": same(
      "The file with your data could not be brought to this version of the app.",
      "Die Datei mit Ihren Daten konnte nicht auf diese Version der App gebracht werden.",
      "Le fichier contenant vos données n’a pas pu être adapté à cette version de l’app."),
    "lazaret.part.cause.repair": same(
      "The file with your data lacks parts that could not be added.",
      "Der Datei mit Ihren Daten fehlen Teile, die nicht ergänzt werden konnten.",
      "Il manque au fichier contenant vos données des parties qui n’ont pas pu être ajoutées."),
    "lazaret.part.cause.leftovers": same(
      "The file with your data was missing; only parts of it were found.",
      "Die Datei mit Ihren Daten fehlte; nur Teile davon wurden gefunden.",
      "Le fichier contenant vos données manquait ; seules des parties ont été trouvées."),
    "lazaret.part.cause.set-aside": same(
      "The file with your data was set aside on request.", "Die Datei mit Ihren Daten wurde auf Wunsch beiseitegelegt.",
      "Le fichier contenant vos données a été mis de côté sur demande."),
    "lazaret.part.cause.empty": same(
      "The file with your data was empty.", "Die Datei mit Ihren Daten war leer.",
      "Le fichier contenant vos données était vide."),
    "lazaret.part.kept": same(
      "It was not deleted: all of it was set aside, and you start with an empty one.",
      "Sie wurde nicht gelöscht, sondern vollständig beiseitegelegt; Sie beginnen mit einer leeren.",
      "Il n’a pas été supprimé : il a été mis de côté en entier, et vous commencez avec un fichier vide."),
    "lazaret.part.kept.leftovers": same(
      "They were not deleted: they were set aside, and you start with an empty file.",
      "Sie wurden nicht gelöscht, sondern beiseitegelegt; Sie beginnen mit einer leeren Datei.",
      "Elles n’ont pas été supprimées : elles ont été mises de côté, et vous commencez avec un fichier vide."),
    "lazaret.part.kept.empty": same(
      "It was not deleted: it was set aside, and you start with a new one.",
      "Sie wurde nicht gelöscht, sondern beiseitegelegt; Sie beginnen mit einer neuen.",
      "Il n’a pas été supprimé : il a été mis de côté, et vous commencez avec un nouveau fichier."),
    "lazaret.part.later": same(
      "Your data can be recovered from it later.", "Ihre Daten können später daraus wiederhergestellt werden.",
      "Vos données pourront en être récupérées plus tard."),
    "lazaret.part.all-recovered": same(
      "All of your data was recovered from it.", "Alle Ihre Daten wurden daraus wiederhergestellt.",
      "Toutes vos données en ont été récupérées."),
    "lazaret.part.most-recovered": same(
      "Most of your data was recovered.", "Die meisten Ihrer Daten wurden wiederhergestellt.",
      "La plupart de vos données ont été récupérées."),
    "lazaret.part.part-recovered": same(
      "Part of your data was recovered.", "Ein Teil Ihrer Daten wurde wiederhergestellt.",
      "Une partie de vos données a été récupérée."),
    "lazaret.part.none-recovered": same(
      "None of your data was recovered.", "Von Ihren Daten wurde nichts wiederhergestellt.",
      "Aucune de vos données n’a été récupérée."),
    "lazaret.part.may-lack": same(
      "Some entries may be missing or incomplete.", "Einige Einträge können fehlen oder unvollständig sein.",
      "Certaines entrées peuvent manquer ou être incomplètes."),
    "lazaret.part.unconfirmed": same(
      "Your data was recovered. Please check that it is complete.",
      "Ihre Daten wurden wiederhergestellt. Bitte prüfen Sie, ob sie vollständig sind.",
      "Vos données ont été récupérées. Veuillez vérifier qu’elles sont complètes."),
    "lazaret.part.left-out": same(
      "This version of the app has no place for some of your entries. They were not deleted.",
      "Diese Version der App hat für einige Ihrer Einträge keinen Platz. Sie wurden nicht gelöscht.",
      "Cette version de l’app n’a pas de place pour certaines de vos entrées. Elles n’ont pas été supprimées."),
    "lazaret.part.repaired": same(
      "Parts of the file with your data were missing and were added.",
      "Teile der Datei mit Ihren Daten fehlten und wurden ergänzt.",
      "Des parties du fichier contenant vos données manquaient et ont été ajoutées."),
    "lazaret.part.nothing-removed": same("Nothing was removed.", "Nichts wurde entfernt.", "Rien n’a été supprimé."),
    "lazaret.part.start-empty": same(
      "You start with an empty file.", "Sie beginnen mit einer leeren Datei.", "Vous commencez avec un fichier vide."),
    "lazaret.part.old-kept": same(
      "The old file was kept as it was.", "Die alte Datei wurde aufbewahrt, wie sie war.",
      "L’ancien fichier a été conservé tel quel."),
    "lazaret.part.support": same(
      "Our support can look at it.", "Unser Support kann sie sich ansehen.", "Notre assistance peut l’examiner."),
    "lazaret.part.send-report": same(
      "The report helps to find out what happened.", "Der Bericht hilft herauszufinden, was geschehen ist.",
      "Le rapport aide à comprendre ce qui s’est passé."),
    "lazaret.part.send-report.facts": same(
      "It says what is damaged and on what system, and holds none of your data.",
      "Er sagt, was beschädigt ist und auf welchem System, und enthält keine Ihrer Daten.",
      "Il indique ce qui est endommagé et sur quel système, et ne contient aucune de vos données."),
    "lazaret.part.send-report.damaged-pages": same(
      "It holds the damaged parts of the file with your data as they are, which can be some of your data.",
      "Er enthält die beschädigten Teile der Datei mit Ihren Daten, wie sie sind; das können einige Ihrer Daten sein.",
      "Il contient telles quelles les parties endommagées du fichier, ce qui peut être une partie de vos données."),
    "lazaret.part.send-report.scrubbed": same(
      "It holds the file with your data with every text, number, date and picture replaced by a meaningless one.",
      "Er enthält die Datei mit Ihren Daten; jeder Text, jede Zahl, jedes Datum und Bild ist durch Bedeutungsloses ersetzt.",
      "Il contient le fichier, où chaque texte, nombre, date et image est remplacé par un autre sans signification."),
    "lazaret.part.send-report.full": same(
      "It holds all of your data.", "Er enthält alle Ihre Daten.", "Il contient toutes vos données."),
  ]
}

/// Text for the app's user, with keys for translation.
package struct OpeningNotice: Sendable, Hashable, Codable {
  package struct Action: Sendable, Hashable, Codable {
    /// The translation key and identity.
    package var key: String

    var title: String

    package init(key: String, title: String) {
      self.key = key
      self.title = title
    }
  }

  /// The translation key.
  ///
  /// `lazaret.notice.damaged`, `.incompatible`, `.migration`, `.leftovers` or `.set-aside` with an empty store;
  /// `.salvage-later` with recoverable records; `.salvaged`, `.salvaged-unconfirmed`, `.salvaged-with-losses` or
  /// `.salvaged-nothing` with a salvaged store; `.migrated-without` if the app's version cannot hold some records;
  /// `.repaired` after adding missing parts, `.repaired-with-losses` with dangling references.
  package var key: String

  package var title: String

  /// The account in two or three sentences.
  package var message: String

  /// The possible actions, the usual choice first.
  package var actions: [Action]

  /// The support report of a failed migration.
  package var report: PathText?

  package init(key: String, title: String, message: String, actions: [Action], report: PathText? = nil) {
    self.key = key
    self.title = title
    self.message = message
    self.actions = actions
    self.report = report
  }

  /// Composes a notice of the catalogue's English words.
  private init(
    _ name: String, cause: String? = nil, hasMost: Bool = false,
    actions: [String] = ["continue", "send-report", "contact-support"], report: PathText? = nil
  ) {
    let words = NoticeWords(.english)
    let key = "lazaret.notice.\(name)"
    self.init(
      key: key, title: words.text("\(key).title") ?? "",
      message: words.message(of: key, cause: cause, hasMost: hasMost) ?? "",
      actions: actions.map { "lazaret.action.\($0)" }.map { Action(key: $0, title: words.text($0) ?? "") },
      report: report)
  }

  /// Returns the notice for the events of an opening, if they need one.
  ///
  /// Its text has no number and no database term: those are for the developer, in the events and the report.
  ///
  /// - Parameter report: the report of the migration failure that caused a quarantine.
  package static func about(_ events: [OpeningEvent], report: FilePath?) -> OpeningNotice? {
    // Other runs' quarantines are reported too.
    guard let reason = events.last(where: { $0.reason != nil })?.reason else {
      return leftOut(by: events) ?? repaired(by: events)
    }
    let salvage = events.last { $0.salvage != nil }?.salvage
    return setAside(reason, salvage, report: report.map { PathText($0) })
  }

  /// Returns the notice for a quarantine and the store installed instead.
  private static func setAside(_ reason: Receipt.Reason, _ salvage: OpeningSalvage?, report: PathText?) -> OpeningNotice
  {
    let cause = key(for: reason.code)
    if let salvage, salvage.isInstalled { return salvaged(cause, salvage, report: report) }
    guard salvage?.state == .pending else { return OpeningNotice(cause, cause: cause, report: report) }
    return OpeningNotice(
      "salvage-later", cause: cause, actions: ["continue", "recover", "send-report", "contact-support"], report: report)
  }

  private static func salvaged(_ cause: String, _ salvage: OpeningSalvage, report: PathText?) -> OpeningNotice {
    let isWhole = salvage.count.detailWords.isEmpty && salvage.doubtful == 0 && salvage.lacksDetails == false
    let name =
      if salvage.isComplete {
        "salvaged"
      } else if salvage.recovered == 0 {
        "salvaged-nothing"
      } else if isWhole {
        // No loss is known, so the text must not claim one.
        "salvaged-unconfirmed"
      } else {
        "salvaged-with-losses"
      }
    return OpeningNotice(name, cause: cause, hasMost: salvage.hasMost, report: report)
  }

  /// Returns the notice for entities that a migration left out.
  private static func leftOut(by events: [OpeningEvent]) -> OpeningNotice? {
    guard events.contains(where: { $0.migration?.removedRows.values.contains { $0 > 0 } == true }) else { return nil }
    return OpeningNotice("migrated-without")
  }

  /// The key of a repair without losses.
  static let repairedKey = "lazaret.notice.repaired"

  private static func repaired(by events: [OpeningEvent]) -> OpeningNotice? {
    guard let repair = events.lazy.compactMap(\.repair).first else { return nil }
    let hasLosses = repair.danglingReferences > 0 || repair.hasLostRecords
    return hasLosses
      ? OpeningNotice("repaired-with-losses") : OpeningNotice("repaired", actions: ["continue", "contact-support"])
  }

  /// Returns the stable word for a reason's code.
  static func key(for code: String) -> String {
    switch code {
    case VerdictReason.migrationFailedCode: "migration"
    case VerdictReason.repairFailedCode: "repair"
    case "other-model", "unknown-version", "not-core-data", "other-schema", VerdictReason.notMigratableCode:
      "incompatible"
    case QuarantineCase.leftoversCode: "leftovers"
    case QuarantineCase.requestCode: "set-aside"
    case "empty-file": "empty"
    default: "damaged"
    }
  }
}
