internal import Foundation

/// The words of notices in the languages of the catalogue.
struct NoticeWords {
  /// Words for one and for several; the same where they hold no number.
  struct Forms: Sendable, Hashable {
    var one: String
    var other: String

    /// Words without a number.
    init(_ text: String) { self.init(text, text) }

    /// Words with a number, which stands where they have `%lld`.
    init(_ one: String, _ other: String) {
      self.one = one
      self.other = other
    }
  }

  private let place: Int

  /// The words of a language.
  init(_ language: Notice.Language) { place = Notice.Language.allCases.firstIndex(of: language) ?? 0 }

  /// The words of a key, with a number where they hold one; nil where there are none.
  func text(_ key: String, _ count: Int64? = nil) -> String? {
    guard let forms = Self.all[key]?[place] else { return nil }
    guard let count else { return forms.other }
    // French counts nothing as one, and English and German as several.
    let isOne = count == 1 || count == 0 && Notice.Language.allCases[place] == .french
    return (isOne ? forms.one : forms.other).replacingOccurrences(of: "%lld", with: "\(count)")
  }

  /// All words as a string catalogue of Xcode's.
  static var catalogue: String {
    var strings: [String: Any] = [:]
    for (key, languages) in all {
      var localizations: [String: Any] = [:]
      for (language, forms) in zip(Notice.Language.allCases, languages) {
        func unit(_ text: String) -> [String: Any] { ["stringUnit": ["state": "translated", "value": text]] }
        localizations[language.rawValue] =
          forms.one == forms.other
          ? unit(forms.other) : ["variations": ["plural": ["one": unit(forms.one), "other": unit(forms.other)]]]
      }
      strings[key] = ["extractionState": "manual", "localizations": localizations]
    }
    let catalogue: [String: Any] = ["sourceLanguage": "en", "strings": strings, "version": "1.0"]
    // Strings in dictionaries can always be written.
    let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let data = (try? JSONSerialization.data(withJSONObject: catalogue, options: options)) ?? Data()
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  /// The words by their keys: English, German, French.
  static let all: [String: [Forms]] = titles.merging(actions) { $1 }.merging(parts) { $1 }

  private static func same(_ english: String, _ german: String, _ french: String) -> [Forms] {
    [Forms(english), Forms(german), Forms(french)]
  }
}

// MARK: - The words

extension NoticeWords {
  private static let setAsideTitle = same(
    "Your data was set aside", "Ihre Daten wurden beiseitegelegt", "Vos données ont été mises de côté")

  private static let reportTitle = same(
    "Send a report to support?", "Bericht an den Support senden?", "Envoyer un rapport à l’assistance ?")

  private static let titles: [String: [Forms]] = [
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

  private static let actions: [String: [Forms]] = [
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

  private static let parts: [String: [Forms]] = [
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
      "The file with your data was set aside on request.",
      "Die Datei mit Ihren Daten wurde auf Wunsch beiseitegelegt.",
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
    "lazaret.part.held": [
      Forms("Its %lld record was set aside with it.", "Its %lld records were set aside with it."),
      Forms("%lld Datensatz wurde mit ihr beiseitegelegt.", "%lld Datensätze wurden mit ihr beiseitegelegt."),
      Forms(
        "%lld enregistrement a été mis de côté avec lui.", "%lld enregistrements ont été mis de côté avec lui."),
    ],
    "lazaret.part.later": same(
      "Your data can be recovered from it later.", "Ihre Daten können später daraus wiederhergestellt werden.",
      "Vos données pourront en être récupérées plus tard."),
    "lazaret.part.all-recovered": same(
      "All of your data was recovered from it.", "Alle Ihre Daten wurden daraus wiederhergestellt.",
      "Toutes vos données en ont été récupérées."),
    "lazaret.part.none-recovered": same(
      "No records were recovered.", "Es wurden keine Datensätze wiederhergestellt.",
      "Aucun enregistrement n’a été récupéré."),
    "lazaret.part.start-empty": same(
      "You start with an empty file.", "Sie beginnen mit einer leeren Datei.", "Vous commencez avec un fichier vide."),
    "lazaret.part.recovered": [
      Forms("%lld record was recovered.", "%lld records were recovered."),
      Forms("%lld Datensatz wurde wiederhergestellt.", "%lld Datensätze wurden wiederhergestellt."),
      Forms("%lld enregistrement a été récupéré.", "%lld enregistrements ont été récupérés."),
    ],
    "lazaret.part.doubtful": [
      Forms("%lld of them is doubtful.", "%lld of them are doubtful."),
      Forms("%lld davon ist zweifelhaft.", "%lld davon sind zweifelhaft."),
      Forms("%lld d’entre eux est douteux.", "%lld d’entre eux sont douteux."),
    ],
    "lazaret.part.lost": [
      Forms("%lld record is lost.", "%lld records are lost."),
      Forms("%lld Datensatz ist verloren.", "%lld Datensätze sind verloren."),
      Forms("%lld enregistrement est perdu.", "%lld enregistrements sont perdus."),
    ],
    "lazaret.part.about-lost": [
      Forms("About %lld record is lost.", "About %lld records are lost."),
      Forms("Etwa %lld Datensatz ist verloren.", "Etwa %lld Datensätze sind verloren."),
      Forms("Environ %lld enregistrement est perdu.", "Environ %lld enregistrements sont perdus."),
    ],
    "lazaret.part.unknown-lost": same(
      "More may be lost; nothing tells how many.", "Weitere können verloren sein; wie viele, ist nicht bekannt.",
      "D’autres peuvent être perdus ; leur nombre n’est pas connu."),
    "lazaret.part.details": same(
      "Details of some may be missing.", "Bei einigen können Einzelheiten fehlen.",
      "Des détails de certains peuvent manquer."),
    "lazaret.part.unconfirmed": same(
      "It could not be confirmed that this is all of it.", "Es ließ sich nicht bestätigen, dass das alle sind.",
      "Il n’a pas pu être confirmé que ce sont tous."),
    "lazaret.part.values-set-aside": [
      Forms(
        "%lld value that has no column was set aside.", "%lld values that have no column were set aside."),
      Forms(
        "%lld Wert ohne Spalte wurde beiseitegelegt.", "%lld Werte ohne Spalte wurden beiseitegelegt."),
      Forms(
        "%lld valeur sans colonne a été mise de côté.", "%lld valeurs sans colonne ont été mises de côté."),
    ],
    "lazaret.part.values-left-out": [
      Forms(
        "The update to this version left out %lld value of what was recovered.",
        "The update to this version left out %lld values of what was recovered."),
      Forms(
        "Bei der Aktualisierung auf diese Version blieb %lld Wert des Wiederhergestellten weg.",
        "Bei der Aktualisierung auf diese Version blieben %lld Werte des Wiederhergestellten weg."),
      Forms(
        "La mise à jour vers cette version a laissé de côté %lld valeur de ce qui a été récupéré.",
        "La mise à jour vers cette version a laissé de côté %lld valeurs de ce qui a été récupéré."),
    ],
    "lazaret.part.records-left-out": [
      Forms(
        "The update to this version left out %lld record of what was recovered.",
        "The update to this version left out %lld records of what was recovered."),
      Forms(
        "Bei der Aktualisierung auf diese Version blieb %lld Datensatz des Wiederhergestellten weg.",
        "Bei der Aktualisierung auf diese Version blieben %lld Datensätze des Wiederhergestellten weg."),
      Forms(
        "La mise à jour vers cette version a laissé de côté %lld enregistrement de ce qui a été récupéré.",
        "La mise à jour vers cette version a laissé de côté %lld enregistrements de ce qui a été récupéré."),
    ],
    "lazaret.part.dangling": [
      Forms("%lld reference in it leads to no record.", "%lld references in it lead to no record."),
      Forms(
        "%lld Verweis darin führt zu keinem Datensatz.", "%lld Verweise darin führen zu keinem Datensatz."),
      Forms(
        "%lld référence qu’il contient ne mène à aucun enregistrement.",
        "%lld références qu’il contient ne mènent à aucun enregistrement."),
    ],
    "lazaret.part.kept-beside": [
      Forms("%lld record was set aside.", "%lld records were set aside."),
      Forms("%lld Datensatz wurde beiseitegelegt.", "%lld Datensätze wurden beiseitegelegt."),
      Forms("%lld enregistrement a été mis de côté.", "%lld enregistrements ont été mis de côté."),
    ],
    "lazaret.part.lost-pairs": [
      Forms("%lld link between records is lost.", "%lld links between records are lost."),
      Forms(
        "%lld Verknüpfung zwischen Datensätzen ist verloren.", "%lld Verknüpfungen zwischen Datensätzen sind verloren."),
      Forms("%lld lien entre enregistrements est perdu.", "%lld liens entre enregistrements sont perdus."),
    ],
    "lazaret.part.about-lost-pairs": [
      Forms("About %lld link between records is lost.", "About %lld links between records are lost."),
      Forms(
        "Etwa %lld Verknüpfung zwischen Datensätzen ist verloren.",
        "Etwa %lld Verknüpfungen zwischen Datensätzen sind verloren."),
      Forms(
        "Environ %lld lien entre enregistrements est perdu.", "Environ %lld liens entre enregistrements sont perdus."),
    ],
    "lazaret.part.unknown-lost-pairs": same(
      "Links between records may be lost; nothing tells how many.",
      "Verknüpfungen zwischen Datensätzen können verloren sein; wie viele, ist nicht bekannt.",
      "Des liens entre enregistrements peuvent être perdus ; rien ne dit combien."),
    "lazaret.part.left-out": [
      Forms(
        "This version of the app has no place for %lld record of the file with your data.",
        "This version of the app has no place for %lld records of the file with your data."),
      Forms(
        "Diese Version der App hat keinen Platz für %lld Datensatz der Datei mit Ihren Daten.",
        "Diese Version der App hat keinen Platz für %lld Datensätze der Datei mit Ihren Daten."),
      Forms(
        "Cette version de l’app n’a pas de place pour %lld enregistrement du fichier contenant vos données.",
        "Cette version de l’app n’a pas de place pour %lld enregistrements du fichier contenant vos données."),
    ],
    "lazaret.part.repaired": same(
      "Parts of the file with your data were missing and were added. Nothing was removed.",
      "Teile der Datei mit Ihren Daten fehlten und wurden ergänzt. Nichts wurde entfernt.",
      "Des parties du fichier contenant vos données manquaient et ont été ajoutées. Rien n’a été supprimé."),
    "lazaret.part.repaired-with-losses": same(
      "Parts of the file with your data were missing and were added. Some of your data may be missing.",
      "Teile der Datei mit Ihren Daten fehlten und wurden ergänzt. Einige Ihrer Daten fehlen möglicherweise.",
      "Des parties du fichier contenant vos données manquaient et ont été ajoutées. Une partie de vos données peut manquer."
    ),
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
