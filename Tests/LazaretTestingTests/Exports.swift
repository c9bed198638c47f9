@_exported public import ModelMaking
