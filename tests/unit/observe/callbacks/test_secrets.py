"""Keys and passwords are not written."""

from tianji.observe.callbacks.secrets import without_secrets


def test_values_of_secret_variables_are_hidden_wherever_they_stand():
    environment = {"WANDB_API_KEY": "abcdef123", "MLFLOW_TRACKING_PASSWORD": "hunter22"}
    text = "login abcdef123 with hunter22"
    assert without_secrets(text, environment) == "login *** with ***"


def test_users_and_passwords_of_addresses_are_hidden():
    text = "GET https://me:pa-ss@host:5000/api and http://host/path@here"
    assert without_secrets(text, {}) == "GET https://***@host:5000/api and http://host/path@here"


def test_ordinary_variables_and_short_values_stay():
    environment = {"USER_KEY": "a", "HOME": "/home/me"}
    assert without_secrets("a word in /home/me", environment) == "a word in /home/me"
